/**
 * Exit code of a program whose measured figure (time, CPU, memory) is beyond its limit, while all else is as it must be.
 * Other work on the machine may be why: `.ci/run` measures again. What is wrong has another code, and is wrong at once.
 */
export const BEYOND_LIMIT = 3;
