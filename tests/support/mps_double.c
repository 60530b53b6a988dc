/* mps_double.c - a program with the interface of nvidia-cuda-mps-control, for machines without one.
 *
 * "-d" forks a daemon that answers on the socket "control" of CUDA_MPS_PIPE_DIRECTORY; without
 * arguments it sends its input there and prints the answer. It is as careless as NVIDIA's: its
 * umask is 0, it writes its lock and pid file 0666 and its logs through whatever links are there.
 *
 * Files in the directory CUDA_MPS_PIPE_DIRECTORY + ".script" make it behave: "fault" has a word
 * (see below), "servers" is the answer to get_server_list. "control.log" in
 * CUDA_MPS_LOG_DIRECTORY gets a line for each start. It ends by itself after five minutes. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PID_FILE "nvidia-cuda-mps-control.pid"

static const char *directory(const char *variable) {
    const char *value = getenv(variable);
    if (value == NULL) {
        fprintf(stderr, "%s is not set\n", variable);
        exit(3);
    }
    return value;
}

static void path_of(char path[256], const char *variable, const char *name) {
    snprintf(path, 256, "%s/%s", directory(variable), name);
}

static size_t read_script(const char *name, char *text, size_t size) {
    char path[256];
    snprintf(path, sizeof(path), "%s.script/%s", directory("CUDA_MPS_PIPE_DIRECTORY"), name);
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    return length;
}

static int has_fault(const char *word) {
    char text[64];
    read_script("fault", text, sizeof(text));
    return strcmp(text, word) == 0;
}

static int open_socket(const char *name, struct sockaddr_un *address) {
    char path[256];
    path_of(path, "CUDA_MPS_PIPE_DIRECTORY", name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, strnlen(path, sizeof(address->sun_path) - 1));
    return socket(AF_UNIX, SOCK_SEQPACKET, 0);
}

static void write_text(const char *variable, const char *name, const char *mode, const char *text) {
    char path[256];
    path_of(path, variable, name);
    FILE *file = fopen(path, mode);
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

static void answer(int client) {
    char command[256], text[1024];
    ssize_t got = read(client, command, sizeof(command) - 1);
    command[got > 0 ? got : 0] = '\0';
    if (got > 0 && has_fault("mute")) {
        pause();
    }
    if (strcmp(command, "get_server_list\n") == 0) {
        size_t length = read_script("servers", text, sizeof(text));
        if (has_fault("babble")) {
            length = (size_t)snprintf(text, sizeof(text), "Server not found\n");
        }
        if (length > 0 && write(client, text, length) < 0) {
            return;
        }
    }
    if (strncmp(command, "quit", 4) == 0 && !has_fault("stubborn")) {
        static const char *const names[] = {"control", "control_privileged", PID_FILE};
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            char path[256];
            path_of(path, "CUDA_MPS_PIPE_DIRECTORY", names[i]);
            unlink(path);
        }
        exit(0);
    }
}

static int listen_at(const char *name) {
    struct sockaddr_un address;
    int fd = open_socket(name, &address);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 8) != 0) {
        exit(1);
    }
    return fd;
}

static int serve(int server) {
    char text[64];
    setsid();
    alarm(300);
    if (has_fault("absent")) {
        return 0;
    }
    server = server >= 0 ? server : listen_at("control");
    listen_at("control_privileged");
    snprintf(text, sizeof(text), "%d\n", (int)getpid());
    write_text("CUDA_MPS_PIPE_DIRECTORY", PID_FILE, "w", text);
    if (has_fault("mortal")) {
        return 1;
    }
    for (;;) {
        int client = accept(server, NULL, NULL);
        if (client >= 0) {
            answer(client);
            close(client);
        }
    }
}

static int ask(void) {
    struct sockaddr_un address;
    char text[1024];
    int fd = open_socket("control", &address);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        printf("Cannot find MPS control daemon process\n");
        return 1;
    }
    ssize_t got = read(STDIN_FILENO, text, sizeof(text));
    if (got < 0 || write(fd, text, (size_t)got) != got) {
        return 1;
    }
    while ((got = read(fd, text, sizeof(text))) > 0) {
        fwrite(text, 1, (size_t)got, stdout);
    }
    return 0;
}

/* Open what the start touches, links and all. */
static void leave_files(char **argv, int argc) {
    char line[512], path[256];
    const char *device = getenv("CUDA_VISIBLE_DEVICES");
    snprintf(line, sizeof(line), "%s%s%s device %s\n", argv[1], argc > 2 ? " " : "",
             argc > 2 ? argv[2] : "", device != NULL ? device : "?");
    path_of(path, "CUDA_MPS_PIPE_DIRECTORY", "control_lock");
    open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    path_of(path, "CUDA_MPS_PIPE_DIRECTORY", "log"); /* what it reads goes to its log */
    mkfifo(path, 0777);
    open(path, O_RDWR | O_CLOEXEC);
    write_text("CUDA_MPS_LOG_DIRECTORY", "control.log", "a", line);
    write_text("CUDA_MPS_LOG_DIRECTORY", "server.log", "a", "Start\n");
}

int main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "-d") != 0) {
        return ask();
    }
    umask(0);
    alarm(300);
    while (has_fault("wait")) { /* for the test to do something before anything is there */
        poll(NULL, 0, 2);
    }
    if (has_fault("refuse")) {
        fprintf(stderr, "An instance of this daemon is already running\n");
        return 1;
    }
    leave_files(argv, argc);
    int server = has_fault("early") ? listen_at("control") : -1; /* the socket's peer is gone */
    pid_t child = fork();
    return child == 0 ? serve(server) : child < 0;
}
