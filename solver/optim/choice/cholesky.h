/** Cholesky factors of small dense matrices, row by row. */
#ifndef HV_SOLVER_OPTIM_CHOICE_CHOLESKY_H
#define HV_SOLVER_OPTIM_CHOICE_CHOLESKY_H

#include <stdbool.h>
#include <stddef.h>

/** Replaces the lower triangle of a symmetric matrix, [n × n], by L with L Lᵀ = a. False: the
 * matrix is not positive definite, and its triangle is of no use afterwards. O(n³). */
bool hv_cholesky(double *a, size_t n);
/** Replaces x, [n], by the solution y of L y = x. O(n²). */
void hv_cholesky_forward(const double *l, size_t n, double *x);
/** Replaces x, [n], by the solution y of Lᵀ y = x. O(n²). */
void hv_cholesky_back(const double *l, size_t n, double *x);

#endif
