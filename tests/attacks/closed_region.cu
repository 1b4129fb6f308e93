// tries: closes the edit region and goes on behind it
// rows: C1 H21
// verdict: edit_violation
extern "C" void launch(const Args&, cudaStream_t) {}
// <<< edit
int main() { return 0; }
// >>> edit
