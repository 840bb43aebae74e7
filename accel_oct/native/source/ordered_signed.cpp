#include "ordered_handle.hpp"

OrderedHandle new_signed_handle(
    int32_t counter, const void* table, const OrderedOptions& options, const volatile int32_t* stop) {
    return new_handle<ordered::SIGNED>(counter, table, options, stop);
}
