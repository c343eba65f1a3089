#pragma once
#include <stdio.h>

/* Ends a function that returns int when the condition does not hold. */
#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                        \
        }                                                                    \
    } while (0)
