/* module.c - compiled kernels, loaded into this process.
 *
 * The compiler makes a shared object. A header with its length and hash is put before it, because
 * the loader maps what the file claims to have: a truncated file would fault instead of failing.
 * The bytes go into a file in memory (memfd) or, where the system forbids running those, into a
 * temporary file that is unlinked at once. The file stays open while its module is loaded, because
 * the loader identifies libraries by name, which here is the descriptor's. */
#include "compute/cpu/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char magic[8] = "acrecpu1";

struct cpu_header {
    char magic[8];
    uint64_t length, hash;
};
_Static_assert(sizeof(struct cpu_header) == 24, "on disk, in the cache");

/* What dialect_cpu.c writes beside each kernel. */
struct entry_facts {
    uint32_t has_barrier, is_bounded;
    uint32_t count; /* parameters */
    uint32_t value_bytes[];
};

struct cpu_module {
    struct cpu_module *next, **link;
    void *library;
    int fd;
    uint32_t local_bytes;
    struct cpu_kernel *kernels;
};

int cpu_module_pack(const void *object, size_t length, struct acre_buf *out) {
    struct cpu_header header = {.length = length, .hash = acre_hash_bytes(object, length)};
    memcpy(header.magic, magic, sizeof(magic));
    int r = acre_buf_append(out, &header, sizeof(header));
    return r == 0 ? acre_buf_append(out, object, length) : r;
}

/* The part of a shared object that each thread has a copy of: our local arrays. */
uint32_t cpu_module_local_bytes(const void *object, size_t length) {
    Elf64_Ehdr head;
    if (length < sizeof(head)) {
        return 0;
    }
    memcpy(&head, object, sizeof(head));
    for (uint32_t i = 0; i < head.e_phnum; i++) {
        uint64_t at = head.e_phoff + (uint64_t)i * sizeof(Elf64_Phdr);
        Elf64_Phdr part;
        if (head.e_phoff > length || at > length - sizeof(part)) {
            break;
        }
        memcpy(&part, (const char *)object + at, sizeof(part));
        if (part.p_type == PT_TLS) {
            return part.p_memsz > UINT32_MAX ? UINT32_MAX : (uint32_t)part.p_memsz;
        }
    }
    return 0;
}

static int write_all(int fd, const char *bytes, size_t length, struct acre_error *err) {
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno != EINTR) {
            return acre_fail_errno(err, errno, "cpu: cannot write the file for compiled kernels");
        }
        bytes += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Loads what is in `fd`, which then belongs to the module. */
static int load_file(struct cpu_module *module, int fd, const void *object, size_t length,
                     struct acre_error *err) {
    int r = write_all(fd, object, length, err);
    if (r == 0) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        const char *why = module->library == NULL ? dlerror() : NULL;
        if (module->library == NULL) {
            r = acre_fail(err, ACRE_ECORRUPT, "cpu: the compiled kernels cannot be loaded: %s",
                          why != NULL ? why : "unknown reason");
        }
    }
    if (r < 0) {
        close(fd);
        return r;
    }
    module->fd = fd;
    return 0;
}

static int load_object(struct cpu_module *module, const void *object, size_t length,
                       struct acre_error *err) {
    int fd = memfd_create("acre-kernels", MFD_CLOEXEC);
    int r = fd < 0 ? ACRE_EIO : load_file(module, fd, object, length, err);
    if (r == 0) {
        return 0;
    }
    char path[256];
    cpu_temporary(path, sizeof(path));
    fd = mkostemp(path, 02000000 /* O_CLOEXEC */);
    if (fd < 0) {
        return acre_fail_errno(err, errno, "cpu: %s", path);
    }
    unlink(path);
    return load_file(module, fd, object, length, err);
}

int cpu_load(void *seat, const void *binary, size_t length, uint64_t *ret_module,
             struct acre_error *err) {
    struct cpu_seat *here = seat;
    struct cpu_header header;
    const char *object = (const char *)binary + sizeof(header);
    if (length >= sizeof(header)) {
        memcpy(&header, binary, sizeof(header));
    }
    if (length < sizeof(header) || memcmp(header.magic, magic, sizeof(magic)) != 0 ||
        header.length != length - sizeof(header) ||
        header.hash != acre_hash_bytes(object, length - sizeof(header))) {
        return acre_fail(err, ACRE_ECORRUPT,
                         "cpu: these %zu bytes are not compiled kernels, or are damaged", length);
    }
    struct cpu_module *module = calloc(1, sizeof(*module));
    if (module == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: module");
    }
    int r = load_object(module, object, length - sizeof(header), err);
    if (r < 0) {
        free(module);
        return r;
    }
    module->local_bytes = cpu_module_local_bytes(object, length - sizeof(header));
    pthread_mutex_lock(&here->lock);
    module->next = here->modules;
    module->link = &here->modules;
    if (module->next != NULL) {
        module->next->link = &module->next;
    }
    here->modules = module;
    pthread_mutex_unlock(&here->lock);
    *ret_module = (uint64_t)(uintptr_t)module;
    return 0;
}

void cpu_unload(void *seat, uint64_t handle) {
    struct cpu_seat *here = seat;
    struct cpu_module *module = (struct cpu_module *)(uintptr_t)handle;
    cpu_pool_see(&here->pool);
    pthread_mutex_lock(&here->lock);
    *module->link = module->next;
    if (module->next != NULL) {
        module->next->link = module->link;
    }
    pthread_mutex_unlock(&here->lock);
    while (module->kernels != NULL) {
        struct cpu_kernel *next = module->kernels->next;
        free(module->kernels);
        module->kernels = next;
    }
    dlclose(module->library);
    close(module->fd);
    free(module);
}

void cpu_modules_let_go(struct cpu_seat *seat) {
    for (const struct cpu_module *module = seat->modules; module != NULL; module = module->next) {
        close(module->fd);
    }
}

/* POSIX promises that what dlsym gives is a function where it is one; C does not. */
static void find_symbol(void *library, const char *prefix, const char *name, void *ret_pointer) {
    char symbol[160];
    snprintf(symbol, sizeof(symbol), "%s%s", prefix, name);
    void *found = dlsym(library, symbol);
    memcpy(ret_pointer, &found, sizeof(found));
}

int cpu_kernel(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
               struct kernel_facts *ret_facts, struct acre_error *err) {
    struct cpu_seat *here = seat;
    struct cpu_module *from = (struct cpu_module *)(uintptr_t)module;
    struct cpu_kernel *kernel = calloc(1, sizeof(*kernel));
    if (kernel == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: kernel");
    }
    const struct entry_facts *facts = NULL;
    find_symbol(from->library, "acre_entry_", name, &kernel->function);
    find_symbol(from->library, "acre_facts_", name, &facts);
    int r = 0;
    if (kernel->function == NULL) {
        r = acre_fail(err, ACRE_ENOTFOUND, "cpu: no kernel '%s' in the compiled program", name);
    } else if (facts != NULL && facts->has_barrier != 0) {
        find_symbol(from->library, "acre_bind", "", &kernel->bind);
        r = cpu_pool_equip(&here->pool, true, false, err);
    }
    if (r < 0) {
        free(kernel);
        return r;
    }
    snprintf(kernel->name, sizeof(kernel->name), "%s", name);
    kernel->is_source = true;
    kernel->is_bounded = facts != NULL && facts->is_bounded != 0;
    atomic_store(&kernel->item_ps, kernel->is_bounded ? CPU_BOUNDED_ITEM_PS : 0);
    pthread_mutex_lock(&here->lock);
    kernel->next = from->kernels;
    from->kernels = kernel;
    pthread_mutex_unlock(&here->lock);
    *ret_kernel = (uint64_t)(uintptr_t)kernel;
    *ret_facts =
        (struct kernel_facts){.group_max = CPU_GROUP_MAX, .local_bytes = from->local_bytes};
    for (uint32_t i = 0; facts != NULL && i < ACRE_MIN(facts->count, (uint32_t)ACRE_ARGS_MAX);
         i++) {
        ret_facts->value_bytes[i] = (uint16_t)ACRE_MIN(facts->value_bytes[i], UINT16_MAX);
    }
    return 0;
}
