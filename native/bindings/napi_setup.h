// The one place that includes napi.h, so that every file sees the same switches. NAPI_VERSION and
// NODE_ADDON_API_CPP_EXCEPTIONS come from CMakeLists.txt.
#pragma once

#define NODE_ADDON_API_DISABLE_DEPRECATED
// Finalizers run inside the garbage collector: they may release memory, never touch JavaScript.
#define NODE_ADDON_API_REQUIRE_BASIC_FINALIZERS
// Electron and sandboxed V8 builds have no external buffers, so nothing here may start to rely on them.
#define NODE_API_NO_EXTERNAL_BUFFERS_ALLOWED
// An environment that is being terminated cannot throw; that must not abort the process.
#define NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS

#include <napi.h>
