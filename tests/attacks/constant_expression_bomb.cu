// tries: a constant expression that takes the compiler for ever, split over thousands that each stay below its bounds
// rows: R
// verdict: compile_error
// with: honest.inc
// Each evaluation stays below the compiler's bound on steps; there are six thousand of them.
template <int F, int N>
struct Slow {
  static constexpr unsigned Value() {
    unsigned x = F * 1000 + N;
    for (int i = 0; i < 200000; ++i) x = x * 1664525u + 1013904223u;
    return x;
  }
  static constexpr unsigned value = Value() + Slow<F, N - 1>::value;
};
template <int F>
struct Slow<F, 0> {
  static constexpr unsigned value = 0;
};
template <int F>
struct All {
  static constexpr unsigned value = Slow<F, 150>::value + All<F - 1>::value;
};
template <>
struct All<0> {
  static constexpr unsigned value = 0;
};
constexpr unsigned kAll = All<40>::value;
extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (kAll == 1) return;
  Honest(args, stream);
}
