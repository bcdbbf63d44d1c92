// Everything public in one header.
#pragma once

#include "palmshed/capabilities.h"  // IWYU pragma: export
#include "palmshed/engine.h"        // IWYU pragma: export
#include "palmshed/error.h"         // IWYU pragma: export
#include "palmshed/events.h"        // IWYU pragma: export
#include "palmshed/execution.h"     // IWYU pragma: export
#include "palmshed/files.h"         // IWYU pragma: export
#include "palmshed/json.h"          // IWYU pragma: export
#include "palmshed/options.h"       // IWYU pragma: export
#include "palmshed/result.h"        // IWYU pragma: export
#include "palmshed/sandbox.h"       // IWYU pragma: export
#include "palmshed/streams.h"       // IWYU pragma: export
#include "palmshed/units.h"         // IWYU pragma: export
#include "palmshed/version.h"       // IWYU pragma: export
