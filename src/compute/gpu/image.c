/* image.c - check that bytes are a complete image of code, before a driver reads them.
 *
 * Drivers take an address and trust the sizes inside. Only what those sizes reach is checked
 * (headers, sections, entries of a bundle); the code itself is for the driver to judge.
 *
 * Kernels of plain CUDA and HIP are C++ functions, whose names include their types (_Z3addPfi), but
 * users call them by the names they wrote. The names are read from the image's symbols: the
 * compilers could return them, but then they would have to be kept with the code wherever it goes.
 *
 * The same holds for the number of a kernel's parameters. Asking the driver for each until there
 * are no more ends in an error, which tools that watch the driver report (compute-sanitizer).
 * CUDA's compilers leave a note for each in the section ".nv.info.KERNEL", whose entries have four
 * bytes (format, attribute, 16 bits), and in format 4 as many more as the 16 bits say. */
#include "compute/gpu/image.h"

#include "core/str.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { BUNDLE_MAGIC_BYTES = 24, BUNDLE_ENTRIES_MAX = 1024 };

static bool is_within(uint64_t offset, uint64_t bytes, size_t length) {
    return offset <= length && bytes <= length - offset;
}

static bool is_whole_elf(const uint8_t *bytes, size_t length) {
    Elf64_Ehdr header;
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

static bool is_elf(const uint8_t *bytes, size_t length) {
    return length >= sizeof(Elf64_Ehdr) && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

static bool is_bundle(const uint8_t *bytes, size_t length) {
    return length >= BUNDLE_MAGIC_BYTES && memcmp(bytes, bundle_magic, BUNDLE_MAGIC_BYTES) == 0;
}

int gpu_image_check(const void *image, size_t length, struct acre_error *err) {
    const uint8_t *bytes = image;
    bool is_whole;
    if (is_elf(bytes, length)) {
        is_whole = is_whole_elf(bytes, length);
    } else if (is_bundle(bytes, length)) {
        is_whole = is_whole_bundle(bytes, length);
    } else {
        is_whole =
            length >= 2 && bytes[0] != ELFMAG0 && memchr(bytes, '\0', length) == bytes + length - 1;
    }
    return is_whole ? 0
                    : acre_fail(err, ACRE_ECORRUPT,
                                "these %zu bytes are not a complete compiled program", length);
}

/* --- names of kernels ----------------------------------------------------------------------- */

enum { KERNELS_MAX_BYTES = 1 << 20, CUDA_MACHINE = 190, CUDA_ENTRY = 0x10, AMD_MACHINE = 224 };
enum { CUDA_NOTES = SHT_LOPROC, NOTE_WITH_BYTES = 4, NOTE_PARAMETER = 0x17 };

/* A kernel is its name, a NUL, and a byte: how many parameters it has. */
static void add_kernel(struct acre_buf *kernels, const char *name, size_t length,
                       uint32_t parameters) {
    if (length > 0) {
        acre_buf_append(kernels, name, length);
        acre_buf_putc(kernels, '\0');
        acre_buf_putc(kernels, (char)ACRE_MIN(parameters, (uint32_t)GPU_IMAGE_UNCOUNTED));
    }
}

static Elf64_Shdr section_at(const uint8_t *bytes, const Elf64_Ehdr *header, uint32_t index) {
    Elf64_Shdr section;
    memcpy(&section, bytes + header->e_shoff + index * sizeof(section), sizeof(section));
    return section;
}

/* Of the kernel whose code is that section. */
static uint32_t count_notes(const uint8_t *bytes, const Elf64_Ehdr *header, uint32_t code) {
    uint32_t count = GPU_IMAGE_UNCOUNTED;
    for (uint32_t i = 0; i < header->e_shnum && count == GPU_IMAGE_UNCOUNTED; i++) {
        Elf64_Shdr notes = section_at(bytes, header, i);
        if (notes.sh_type != CUDA_NOTES || notes.sh_info != code) {
            continue;
        }
        count = 0;
        uint64_t at = 0;
        while (notes.sh_size - at >= 4) {
            const uint8_t *note = bytes + notes.sh_offset + at;
            uint64_t more = note[0] == NOTE_WITH_BYTES ? note[2] + 256U * note[3] : 0;
            count += note[1] == NOTE_PARAMETER;
            at = ACRE_MIN(at + 4 + more, notes.sh_size);
        }
    }
    return count;
}

/* A kernel is a function marked so (CUDA), or has a descriptor "name.kd" (AMD). */
static void add_symbol(const uint8_t *bytes, const Elf64_Ehdr *header, const Elf64_Sym *symbol,
                       struct acre_str text, struct acre_buf *kernels) {
    static const char descriptor[] = ".kd";
    size_t length = strnlen(text.data, text.length);
    size_t tail = sizeof(descriptor) - 1;
    if (length == text.length) {
        return;
    }
    if (header->e_machine == CUDA_MACHINE && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
        (symbol->st_other & CUDA_ENTRY) != 0) {
        add_kernel(kernels, text.data, length, count_notes(bytes, header, symbol->st_shndx));
    } else if (header->e_machine == AMD_MACHINE && length > tail &&
               strcmp(text.data + length - tail, descriptor) == 0) {
        add_kernel(kernels, text.data, length - tail, GPU_IMAGE_UNCOUNTED);
    }
}

/* `bytes` were checked. AMD's code has its symbols in two tables; one is enough. */
static void list_elf(const uint8_t *bytes, struct acre_buf *kernels) {
    Elf64_Ehdr header;
    memcpy(&header, bytes, sizeof(header));
    uint32_t wanted = header.e_machine == AMD_MACHINE ? SHT_DYNSYM : SHT_SYMTAB;
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr table = section_at(bytes, &header, i);
        if (table.sh_type != wanted || table.sh_link >= header.e_shnum) {
            continue;
        }
        Elf64_Shdr texts = section_at(bytes, &header, table.sh_link);
        for (uint64_t at = 0; table.sh_size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            memcpy(&symbol, bytes + table.sh_offset + at, sizeof(symbol));
            if (texts.sh_type == SHT_STRTAB && symbol.st_name < texts.sh_size) {
                struct acre_str text = {(const char *)bytes + texts.sh_offset + symbol.st_name,
                                        (size_t)(texts.sh_size - symbol.st_name)};
                add_symbol(bytes, &header, &symbol, text, kernels);
            }
        }
    }
}

static void list_bundle(const uint8_t *bytes, struct acre_buf *kernels) {
    uint64_t at = BUNDLE_MAGIC_BYTES;
    uint64_t count;
    memcpy(&count, bytes + at, sizeof(count));
    at += sizeof(count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t entry[3];
        memcpy(entry, bytes + at, sizeof(entry));
        at += sizeof(entry) + entry[2];
        if (is_elf(bytes + entry[0], (size_t)entry[1]) &&
            is_whole_elf(bytes + entry[0], (size_t)entry[1])) {
            list_elf(bytes + entry[0], kernels);
        }
    }
}

static uint32_t count_words(const char *text, size_t length, const char *word) {
    uint32_t count = 0;
    const char *at = text;
    while ((at = memmem(at, length - (size_t)(at - text), word, strlen(word))) != NULL) {
        at += strlen(word);
        count++;
    }
    return count;
}

/* ".entry NAME(.param .u64 NAME_param_0, ...)"; without brackets there are none. */
static void list_text(const char *text, struct acre_buf *kernels) {
    static const char word[] = ".entry";
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at, word)) {
        at += sizeof(word) - 1;
        at += strspn(at, " \t\n");
        const char *after = at + strcspn(at, " \t\n(");
        const char *bracket = after + strspn(after, " \t\n");
        size_t within = *bracket == '(' ? strcspn(bracket, ")") : 0;
        add_kernel(kernels, at, (size_t)(after - at), count_words(bracket, within, ".param"));
    }
}

void gpu_image_kernels(const void *image, size_t length, struct acre_buf *kernels) {
    acre_buf_init(kernels, KERNELS_MAX_BYTES);
    if (is_elf(image, length)) {
        list_elf(image, kernels);
    } else if (is_bundle(image, length)) {
        list_bundle(image, kernels);
    } else {
        list_text(image, kernels);
    }
    if (kernels->failed) { /* the last may be a part of one */
        acre_buf_finish(kernels);
        acre_buf_init(kernels, KERNELS_MAX_BYTES);
    }
}

const char *gpu_image_next(const struct acre_buf *kernels, const char *before) {
    const char *next = before == NULL ? kernels->data : before + strlen(before) + 2;
    return kernels->length > 0 && next < kernels->data + kernels->length ? next : NULL;
}

uint32_t gpu_image_parameters(const char *kernel) {
    return (uint8_t)kernel[strlen(kernel) + 1];
}

const char *gpu_image_find(const struct acre_buf *kernels, const char *name) {
    char start[160];
    int length = snprintf(start, sizeof(start), "_Z%zu%s", strlen(name), name);
    bool has_start = length > 0 && (size_t)length < sizeof(start);
    const char *made = NULL;
    const char *kernel = gpu_image_next(kernels, NULL);
    for (; kernel != NULL; kernel = gpu_image_next(kernels, kernel)) {
        if (strcmp(kernel, name) == 0) {
            return kernel;
        }
        if (has_start && made == NULL && strncmp(kernel, start, (size_t)length) == 0) {
            made = kernel;
        }
    }
    return made;
}
