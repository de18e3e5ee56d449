/*
 * Fuzz of the guarded lp_solve: random min-max programs against the exact chain optimum.
 * bench_guard [RUNS [SEED]], 100,000 runs and seed 1 by default. Ends with status 1 when an answer
 * that was called proven is wrong, or a program was called infeasible that is not.
 */
#include "tests/lp_fixture.h"
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv)
{
    long runs = argc > 1 ? strtol(argv[1], NULL, 10) : 100000;
    unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    struct fix_tally n = {0};
    struct hv_rng rng;
    clock_t begin = clock();
    hv_rng_seed(&rng, seed);
    while (n.runs < runs) {
        fix_run(&rng, &n);
    }
    printf("guarded solves %ld (seed %lu): wrong proven %ld, wrong infeasible %ld\n", n.runs, seed,
           n.wrong_proven, n.wrong_infeasible);
    printf("proven %ld, unproven and not the best %ld, infeasible %ld, without "
           "an answer %ld\n",
           n.proven, n.worse, n.infeasible, n.open);
    printf("cpu %.1f s\n", (double)(clock() - begin) / (double)CLOCKS_PER_SEC);
    return n.wrong_proven || n.wrong_infeasible;
}
