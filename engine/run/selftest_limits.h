// The self-test of limits. For each one that a backend offers, a program goes over it and must be
// stopped with the cause that belongs to it, and the same program must run to its end below it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/units.h"
#include "plan/plan.h"
#include "run/sandbox.h"

namespace palmshed::run {

/// Memory, processes, CPU time and CPU quota, in a sandbox where the probe is installed. What is
/// not on offer is among the answers, with the reason.
std::vector<Control> TestLimits(SandboxState& sandbox, const plan::Offer& offer);

using MakeStorage = std::function<Result<std::shared_ptr<SandboxState>>(Bytes quota, Storage)>;

/// Disk quotas and kinds of storage, each in a sandbox of its own.
std::vector<Control> TestStorage(const MakeStorage& make, const plan::Offer& offer,
                                 std::span<const std::byte> probe);

/// The answers of both when there was no sandbox to test them in.
void NoteUntested(const Error& error, std::vector<Control>& controls);

bool Works(const Capabilities& capabilities, std::string_view control);

/// Every flag of limits, from `capabilities.controls`.
void SetLimitFlags(const plan::Offer& offer, Capabilities& capabilities);

}  // namespace palmshed::run
