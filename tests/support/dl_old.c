/* A library for test_core_dl that lacks acre_test_two, as an old driver would. */
int acre_test_one(void);

int acre_test_one(void) {
    return 10;
}
