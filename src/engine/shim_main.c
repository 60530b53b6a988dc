/* shim_main.c - the spawner as a program of its own, linked statically and with nothing it does
 * not need: forking it costs a fifth of forking the whole of `acre`. */
#include "engine/shim.h"

int main(int argc, char **argv) {
    return acre_shim_main(argc, argv);
}
