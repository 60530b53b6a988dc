/* gpu_image.c - whether bytes are a whole image of code, before a driver reads them.
 *
 * Drivers take an address and trust the sizes inside. Only what those sizes reach is looked at
 * (headers, sections, entries of a bundle); what the code itself says is the driver's to judge. */
#include "compute/gpu_place.h"

#include <elf.h>
#include <string.h>

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { BUNDLE_MAGIC_BYTES = 24, BUNDLE_ENTRIES_MAX = 1024 };

static bool is_within(uint64_t offset, uint64_t bytes, size_t length) {
    return offset <= length && bytes <= length - offset;
}

static bool is_whole_elf(const uint8_t *bytes, size_t length) {
    Elf64_Ehdr header;
    if (length < sizeof(header)) {
        return false;
    }
    memcpy(&header, bytes, sizeof(header));
    uint64_t programs = (uint64_t)header.e_phnum * header.e_phentsize;
    uint64_t sections = (uint64_t)header.e_shnum * sizeof(Elf64_Shdr);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
        !is_within(header.e_phoff, programs, length) ||
        !is_within(header.e_shoff, sections, length)) {
        return false;
    }
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, bytes + header.e_shoff + i * sizeof(section), sizeof(section));
        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
            !is_within(section.sh_offset, section.sh_size, length)) {
            return false;
        }
    }
    return true;
}

/* Magic, number of entries; each: offset, bytes, length of its name, name. */
static bool is_whole_bundle(const uint8_t *bytes, size_t length) {
    uint64_t at = BUNDLE_MAGIC_BYTES;
    uint64_t count;
    if (!is_within(at, sizeof(count), length)) {
        return false;
    }
    memcpy(&count, bytes + at, sizeof(count));
    at += sizeof(count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t entry[3];
        if (count > BUNDLE_ENTRIES_MAX || !is_within(at, sizeof(entry), length)) {
            return false;
        }
        memcpy(entry, bytes + at, sizeof(entry));
        at += sizeof(entry);
        if (!is_within(entry[0], entry[1], length) || !is_within(at, entry[2], length)) {
            return false;
        }
        at += entry[2];
    }
    return count > 0;
}

int gpu_image_check(const void *image, size_t length, struct acre_error *err) {
    const uint8_t *bytes = image;
    bool is_whole;
    if (length >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0) {
        is_whole = is_whole_elf(bytes, length);
    } else if (length >= BUNDLE_MAGIC_BYTES &&
               memcmp(bytes, bundle_magic, BUNDLE_MAGIC_BYTES) == 0) {
        is_whole = is_whole_bundle(bytes, length);
    } else {
        is_whole = length >= 2 && memchr(bytes, '\0', length) == bytes + length - 1;
    }
    return is_whole
               ? 0
               : acre_fail(err, ACRE_ECORRUPT,
                           "%zu bytes that are no compiled program, or not all of one", length);
}
