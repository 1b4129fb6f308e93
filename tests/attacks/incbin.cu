// tries: takes a file into the program by the assembler
// rows: H19
// verdict: compile_error
asm(".pushsection .rodata\n.global stolen\nstolen: .incbin \"/etc/shadow\"\n.popsection\n");
extern "C" void launch(const Args&, cudaStream_t) {}
