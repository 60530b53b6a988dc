/* fuzz.h - what every fuzzer shares: its entry point, and asserts about error texts. */
#ifndef ACRE_FUZZ_H
#define ACRE_FUZZ_H

#include "core/error.h"
#include "core/str.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A refusal has its code, and a text that can be shown: valid UTF-8 without controls. */
static inline void acre_fuzz_check_error(const struct acre_error *err, int code) {
    ACRE_ASSERT(err->code == code && code < 0);
    ACRE_ASSERT(err->text[0] != '\0' && strlen(err->text) < sizeof(err->text));
    for (struct acre_str rest = acre_str_from(err->text); rest.length > 0;) {
        size_t length = acre_str_utf8(rest);
        ACRE_ASSERT(length > 0 || rest.length < 4); /* the end may be cut inside a character */
        ACRE_ASSERT((unsigned char)rest.data[0] >= ' ' && rest.data[0] != 0x7f);
        length = ACRE_MAX(length, (size_t)1);
        rest.data += length;
        rest.length -= length;
    }
}

#endif
