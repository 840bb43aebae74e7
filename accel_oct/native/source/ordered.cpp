// What Python calls to search trees over ordered columns.
#include "ordered_handle.hpp"

EXPORT OrderedHandle* ordered_new(
    int32_t counter, const void* table, const OrderedOptions* options, const volatile int32_t* stop) {
    OrderedHandle* handle = static_cast<OrderedHandle*>(malloc(sizeof(OrderedHandle)));
    if (!handle) return nullptr;
    NewHandle* made = options->statistic == ordered::SIGNED     ? new_signed_handle
                      : options->statistic == ordered::LABELLED ? new_labelled_handle
                                                                : new_gains_handle;
    *handle = made(counter, table, *options, stop);
    if (!handle->search) {
        free(handle);
        return nullptr;
    }
    return handle;
}

EXPORT void ordered_free(OrderedHandle* handle) {
    handle->free_search(handle->search);
    free(handle);
}

EXPORT int32_t ordered_begin(OrderedHandle* handle, i64 depth, i64 lower, i64 shallower) {
    return handle->begin_depth(handle->search, depth, lower, shallower);
}

EXPORT void ordered_work(OrderedHandle* handle, int32_t worker) { handle->work(handle->search, worker); }

EXPORT void ordered_state(OrderedHandle* handle, OrderedState* state) { handle->read_state(handle->search, *state); }

EXPORT i64 ordered_tree(OrderedHandle* handle, const Array<int32_t>* rows) {
    return handle->copy_tree(handle->search, *rows);
}
