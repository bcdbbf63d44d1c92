// What an upload from the host is going to take, before any of it is written.
#pragma once

#include <sys/stat.h>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/disk_account.h"

namespace palmshed::workspace {

/// What replacing a file gives back: nothing when it has another name.
DiskAmount RoomOf(const struct stat& replaced);
/// What a copy of an opened regular file takes, whose holes stay holes.
DiskAmount RoomForCopy(BorrowedFd file, const struct stat& st);
/// What copying everything below `source` into `target` takes and gives back; -1: a directory that
/// is still to be made. What cannot be looked at counts nothing: copying it will say why.
DiskChange ChangeByTree(BorrowedFd source, BorrowedFd target);

}  // namespace palmshed::workspace
