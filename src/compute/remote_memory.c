/* remote_memory.c - host memory that a place shares with its runners, and the eventfds it sends.
 *
 * All maps are parts of one sparse file that only grows: a part is given out once, and its pages go
 * back to the kernel when it is unmapped. 2^62 bytes of offsets are not used up. */
#include "compute/remote_inner.h"

#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE_BYTES = 2 << 20 }; /* a large page: such maps start on one, in file and memory */

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

int acre_remote_map(void *place, uint64_t bytes, void **ret_host, struct acre_error *err) {
    struct remote *remote = place;
    struct remote_map *map = calloc(1, sizeof(*map));
    if (map == NULL || bytes == 0 || bytes > UINT64_C(1) << 50) {
        free(map);
        return acre_fail(err, ACRE_ENOMEM, "%llu bytes of host memory", (unsigned long long)bytes);
    }
    uint64_t unit = bytes >= LARGE_BYTES ? LARGE_BYTES : (uint64_t)sysconf(_SC_PAGESIZE);
    pthread_mutex_lock(&remote->lock);
    uint64_t offset = round_up(remote->host_bytes, unit);
    uint64_t end = offset + round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    void *host = MAP_FAILED;
    if (ftruncate(remote->host_fd, (off_t)end) == 0) {
        host = wire_map(remote->host_fd, offset, bytes);
    }
    int error = errno;
    if (host != MAP_FAILED) {
        *map = (struct remote_map){
            .next = remote->maps, .host = host, .bytes = bytes, .offset = offset};
        remote->maps = map;
        remote->host_bytes = end;
    }
    pthread_mutex_unlock(&remote->lock);
    if (host == MAP_FAILED) {
        free(map);
        return acre_fail_errno(err, error, "%llu bytes of host memory", (unsigned long long)bytes);
    }
    *ret_host = host;
    return 0;
}

void acre_remote_unmap(void *place, void *host, uint64_t bytes) {
    struct remote *remote = place;
    pthread_mutex_lock(&remote->lock);
    struct remote_map **link = &remote->maps;
    while (*link != NULL && (*link)->host != host) {
        link = &(*link)->next;
    }
    struct remote_map *map = *link;
    ACRE_ASSERT(map != NULL && map->bytes == bytes);
    *link = map->next;
    pthread_mutex_unlock(&remote->lock);
    munmap(host, bytes);
    fallocate(remote->host_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)map->offset,
              (off_t)round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE)));
    free(map);
}

int remote_find(struct remote *remote, const void *host, uint64_t bytes, uint64_t *ret_offset,
                struct acre_error *err) {
    const uint8_t *at = host;
    bool is_found = false;
    pthread_mutex_lock(&remote->lock);
    for (const struct remote_map *map = remote->maps; map != NULL && !is_found; map = map->next) {
        is_found = at >= map->host && bytes <= map->bytes &&
                   (uint64_t)(at - map->host) <= map->bytes - bytes;
        if (is_found) {
            *ret_offset = map->offset + (uint64_t)(at - map->host);
        }
    }
    pthread_mutex_unlock(&remote->lock);
    return is_found ? 0
                    : acre_fail(err, ACRE_EINVALID,
                                "host memory that is not shared with the runner (acre_remote_map)");
}

/* --- eventfds ------------------------------------------------------------------------------- */

void remote_forget_eventfds(struct remote *remote) {
    for (uint32_t i = 0; i < REMOTE_EVENTFDS; i++) {
        if (remote->eventfds[i].number != 0) {
            close(remote->eventfds[i].fd);
        }
        remote->eventfds[i].number = 0;
    }
}

/* A number that was closed and opened again is another file. */
uint64_t remote_known_eventfd(const struct remote *remote, int fd) {
    for (uint32_t i = 0; i < REMOTE_EVENTFDS; i++) {
        const struct remote_eventfd *known = &remote->eventfds[i];
        if (known->number != 0 && known->of == fd && acre_file_is_same(known->fd, fd)) {
            return known->number;
        }
    }
    return 0;
}

int remote_send_eventfd(struct remote *remote, int fd, uint64_t *ret_number, uint64_t *ret_old,
                        struct acre_error *err) {
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        return acre_fail_errno(err, errno, "eventfd %d", fd);
    }
    struct wire_note note = {
        .magic = WIRE_MAGIC, .kind = WIRE_NOTE_EVENTFD, .number = remote->eventfd_number + 1};
    int r = wire_send(remote->socket, &note, &copy, 1);
    if (r < 0) {
        close(copy);
        return r == -EPIPE || r == -ECONNRESET
                   ? acre_fail(err, ACRE_EUNAVAILABLE, "the runner is gone")
                   : acre_fail_errno(err, -r, "eventfd %d", fd);
    }
    struct remote_eventfd *slot = &remote->eventfds[remote->eventfd_next++ % REMOTE_EVENTFDS];
    *ret_old = slot->number;
    if (slot->number != 0) {
        close(slot->fd);
    }
    *slot = (struct remote_eventfd){.number = ++remote->eventfd_number, .of = fd, .fd = copy};
    *ret_number = slot->number;
    return 0;
}
