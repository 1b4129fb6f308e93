// The bytes of the launcher (launcher/launcher.cpp), as the library carries them.
asm(".pushsection .rodata\n"
    ".global allranks_launcher_begin, allranks_launcher_end\n"
    "allranks_launcher_begin:\n"
    ".incbin \"" ALLRANKS_LAUNCHER
    "\"\n"
    "allranks_launcher_end:\n"
    ".popsection\n");
