// The specification's JSON documents. Requests are closed: an unknown field is an error naming it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/events.h"
#include "palmshed/export.h"
#include "palmshed/files.h"
#include "palmshed/options.h"
#include "palmshed/result.h"

namespace palmshed {
inline namespace v1 {

/// A command as an exec request document carries it: exactly one of the two forms.
struct ExecRequest {
  std::string command{};            ///< Shell form; empty in the argv form.
  std::vector<std::string> args{};  ///< Argv form; empty in the shell form.
  ExecOptions options{};            ///< The rest of the document.
};

/// Parses a document of spec/schemas/sandbox-options.schema.json. INVALID_OPTIONS names the field.
PALMSHED_EXPORT Result<SandboxOptions> ParseSandboxOptions(std::string_view json);
/// Parses a document of spec/schemas/exec-options.schema.json. INVALID_OPTIONS names the field.
PALMSHED_EXPORT Result<ExecRequest> ParseExecRequest(std::string_view json);
/// Parses a size such as "64m", "512KiB" or "100 MB". `field` is named in the error.
PALMSHED_EXPORT Result<Bytes> ParseBytes(std::string_view text, std::string_view field);

/// A document of spec/schemas/exec-result.schema.json.
PALMSHED_EXPORT std::string ToJson(const ExecResult& result);
/// A document of spec/schemas/exec-metadata.schema.json.
PALMSHED_EXPORT std::string ToJson(const ExecMetadata& metadata);
/// A document of spec/schemas/capabilities.schema.json.
PALMSHED_EXPORT std::string ToJson(const Capabilities& capabilities);
/// A document of spec/schemas/error.schema.json.
PALMSHED_EXPORT std::string ToJson(const Error& error);
/// A document of spec/schemas/event.schema.json.
PALMSHED_EXPORT std::string ToJson(const Event& event);
/// A document of spec/schemas/file-stat.schema.json.
PALMSHED_EXPORT std::string ToJson(const FileStat& stat);
/// As above, with the entry's name.
PALMSHED_EXPORT std::string ToJson(const DirEntry& entry);

}  // namespace v1
}  // namespace palmshed
