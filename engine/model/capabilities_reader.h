// Reads back what ToJson(const Capabilities&) has written.
#pragma once

#include <string>

#include "model/json_value.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"

namespace palmshed::model {

/// An object of spec/schemas/capabilities.schema.json, found at `path` of its document. Closed, as
/// requests are; what is absent keeps its default. INVALID_OPTIONS names the field.
Result<Capabilities> ReadCapabilities(const JsonValue& value, const std::string& path);

}  // namespace palmshed::model
