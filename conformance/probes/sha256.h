// SHA-256 (FIPS 180-4), so that a case can tell from one line that every byte arrived.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sha256 {
  uint32_t state[8];
  uint64_t size;
  unsigned char block[64];
};

void sha256_begin(struct sha256* hash);
void sha256_add(struct sha256* hash, const void* bytes, size_t size);
// As 64 hexadecimal digits and a NUL.
void sha256_end(struct sha256* hash, char into[65]);
