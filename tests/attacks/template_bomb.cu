// tries: templates that double at every level
// rows: H20
// verdict: compile_error
template <int N, int M>
struct Bomb {
  static constexpr int value = Bomb<N - 1, 2 * M>::value + Bomb<N - 1, 2 * M + 1>::value;
};
template <int M>
struct Bomb<0, M> {
  static constexpr int value = M;
};
static_assert(Bomb<26, 1>::value == 0);
extern "C" void launch(const Args&, cudaStream_t) {}
