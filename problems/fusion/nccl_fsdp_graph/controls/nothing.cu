// verdict: wrong_result
// A communicator, and no call of it.
extern "C" void setup(allranks::Boot& boot, const Args&) { allranks::NcclWorld(boot); }

extern "C" void launch(const Args&, cudaStream_t) {}
