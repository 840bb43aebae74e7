// Functions about the library itself.
#include "base.hpp"

// Which sources this was compiled from, see accel_oct/native/digest.py: a library of other sources is not loaded.
EXPORT const char* built_from() { return SOURCE_DIGEST; }

// Work between two questions whether to go on; for tests, which ask often.
EXPORT void set_poll_interval(i64 work) { Poll::interval = work; }
