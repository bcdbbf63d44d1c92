// A static program of three instructions: what remains of its run is the sandbox's own cost.
        .globl _start
        .text
_start:
#if defined(__x86_64__)
        movl    $60, %eax
        xorl    %edi, %edi
        syscall
#elif defined(__aarch64__)
        mov     x8, #93
        mov     x0, #0
        svc     #0
#else
#error "exit(0) is not written for this machine"
#endif
        .section .note.GNU-stack, "", %progbits
