/* A library for test_core_dl that has every symbol the test asks for. */
int acre_test_one(void);
int acre_test_two(void);

int acre_test_one(void) {
    return 1;
}

int acre_test_two(void) {
    return 2;
}
