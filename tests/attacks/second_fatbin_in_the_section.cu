// tries: the assembler puts a second fatbin, with sizes that lead far outside, into the section where tools look for the first
// rows: R
// verdict: pass|compile_error|forbidden_api|tampering
// with: honest.inc
asm(".pushsection .nv_fatbin,\"a\",@progbits\n"
    ".balign 8\n"
    ".long 0xba55ed50\n.short 1\n.short 16\n.quad 0x7ffffffffffffff0\n"
    ".short 2\n.short 0x101\n.long 0xfffffff0\n.quad 0xffffffffffffff00\n"
    ".quad 0\n.short 7\n.short 1\n.long 90\n.quad 0\n.quad 0x11\n.quad 0\n.quad -1\n"
    ".popsection\n"
    ".pushsection .nvFatBinSegment,\"aw\",@progbits\n"
    ".long 0x466243b1\n.long 1\n.quad 0xdead0000\n.quad 0\n"
    ".popsection\n");
extern "C" void launch(const Args& args, cudaStream_t stream) { Honest(args, stream); }
