/** Closed forms of pipeline schedules: cross-checks of the simulator and quick estimates. */
#ifndef HV_SOLVER_SIM_CLOSED_H
#define HV_SOLVER_SIM_CLOSED_H

/** Equal stages: times of a whole rank for one micro-batch, and of one hop. */
struct hv_closed_input {
    double ranks, micro_batches, chunks;
    double f_s, b_s, w_s; /**< b + w = whole backward */
    double hop_s;
};

/** GPipe, (m + p − 1)(f + b + w); exact at hop 0. Source: GPipe, NeurIPS'19, §2.3. */
double hv_closed_gpipe_s(const struct hv_closed_input *c);
/**
 * 1F1B, (m + p − 1)(f + b + w) + (2(p − 1)(m/p + 1) − 2)·hop for p | m and a hop that is small
 * against f. Source: PipeDream-Flush (ICML'21) for hop 0; the hop term fitted to and checked
 * against simulation.
 */
double hv_closed_1f1b_s(const struct hv_closed_input *c);
/** Interleaved 1F1B at hop 0, m ≥ p: m·S + (p − 1)·S/v. Source: Megatron-LM, SC'21, §2.2. */
double hv_closed_interleaved_s(const struct hv_closed_input *c);
/** ZB-H1 wall time, m·S + (p − 1)·max(f, b, f + b − w), hop 0, m ≥ p. Source: Zero Bubble, ICLR'24,
 * §2.3. */
double hv_closed_zb_h1_s(const struct hv_closed_input *c);
/** ZB-H2 wall time, m·S + (p − 1)·max(f, b − f, f + b − 2w), hop 0, m ≥ 2p − 1. Source: as ZB-H1.
 */
double hv_closed_zb_h2_s(const struct hv_closed_input *c);
/** Token slices of equal cost: (m·k + p − 1)·S/k. Source: Seq1F1B, arXiv 2406.03488. */
double hv_closed_seq1f1b_s(const struct hv_closed_input *c, double slices);

#endif
