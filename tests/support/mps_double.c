/* mps_double.c - a program with the interface of nvidia-cuda-mps-control, for machines without one.
 *
 * "-d" forks a daemon that writes its pid file and answers on the socket "control" of
 * CUDA_MPS_PIPE_DIRECTORY; without arguments it sends its input there and prints the answer.
 * Files in CUDA_MPS_LOG_DIRECTORY script it: "fault" has a word (see below), "servers" is the
 * answer to get_server_list. "control.log" gets a line for each start. It ends by itself after a
 * minute. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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
    path_of(path, "CUDA_MPS_LOG_DIRECTORY", name);
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

static int open_socket(struct sockaddr_un *address) {
    char path[256];
    path_of(path, "CUDA_MPS_PIPE_DIRECTORY", "control");
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, strnlen(path, sizeof(address->sun_path) - 1));
    return socket(AF_UNIX, SOCK_STREAM, 0);
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
    if (has_fault("mute")) {
        pause();
    }
    if (strcmp(command, "get_server_list\n") == 0) {
        size_t length = read_script("servers", text, sizeof(text));
        if (has_fault("babble")) {
            length = (size_t)snprintf(text, sizeof(text), "Server not found\n");
        }
        if (write(client, text, length) < 0) {
            return;
        }
    }
    if (strncmp(command, "quit", 4) == 0 && !has_fault("stubborn")) {
        char path[256];
        path_of(path, "CUDA_MPS_PIPE_DIRECTORY", "control");
        unlink(path);
        path_of(path, "CUDA_MPS_PIPE_DIRECTORY", "nvidia-cuda-mps-control.pid");
        unlink(path);
        exit(0);
    }
}

static int serve(void) {
    struct sockaddr_un address;
    char text[64];
    int server = open_socket(&address);
    setsid();
    alarm(60);
    if (bind(server, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(server, 8) != 0) {
        return 1;
    }
    chmod(address.sun_path, 0666);
    if (has_fault("nameless")) {
        pause();
    }
    snprintf(text, sizeof(text), "%d\n", (int)getpid());
    write_text("CUDA_MPS_PIPE_DIRECTORY", "nvidia-cuda-mps-control.pid", "w", text);
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
    int fd = open_socket(&address);
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

int main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "-d") != 0) {
        return ask();
    }
    if (has_fault("refuse")) {
        fprintf(stderr, "An instance of this daemon is already running\n");
        return 1;
    }
    char line[512];
    const char *device = getenv("CUDA_VISIBLE_DEVICES");
    snprintf(line, sizeof(line), "%s%s%s device %s\n", argv[1], argc > 2 ? " " : "",
             argc > 2 ? argv[2] : "", device != NULL ? device : "?");
    write_text("CUDA_MPS_LOG_DIRECTORY", "control.log", "a", line);
    pid_t child = fork();
    return child == 0 ? serve() : child < 0;
}
