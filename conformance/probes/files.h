// What the sources of the probe `files` share.
#pragma once

#include <stddef.h>

enum { kPathSize = 8192 };

// 64 times "../", then the path.
void climb(char* into, size_t size, const char* from, const char* path);

void bind_mount(char** paths);
void bind_mount_new(char** paths);
void change_mode(char** paths);
void change_owner(char** paths);
void change_times(char** paths);
void create_file(char** paths);
void exchange_until(char** paths);
void execute(char** paths);
void execute_memory(char** paths);
void execute_written(char** paths);
void fanotify(char** paths);
void fill_at_once(char** arguments);
void fill_deleted(char** arguments);
void fill_unnamed(char** arguments);
void inotify(char** paths);
void keep_many(char** arguments);
void lock_file(char** paths);
void make_directory(char** paths);
void make_fifo(char** paths);
void make_many(char** paths);
void make_node(char** paths);
void make_set_id(char** paths);
void make_temporary(char** paths);
void map_writable_executable(char** paths);
void preallocate(char** paths);
void remount(char** paths);
void rename_file(char** paths);
void set_attribute(char** paths);
void truncate_file(char** paths);
void unlink_file(char** paths);
void write_file(char** paths);

void descriptor_escape(char** paths);
void descriptors(char** paths);
void every_descriptor(char** paths);
void every_root(char** paths);
void every_route(char** paths);
