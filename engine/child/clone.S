// long PalmshedCloneOnStack(flags, stack_top, parent_word, child_word, entry, argument)
//
// A C function cannot do this: the child returns from the system call onto another stack.
        .text
        .globl  PalmshedCloneOnStack
        .hidden PalmshedCloneOnStack
        .type   PalmshedCloneOnStack, %function
        .p2align 4
PalmshedCloneOnStack:
#if defined(__x86_64__)
        andq    $-16, %rsi
        subq    $16, %rsi
        movq    %r8, 0(%rsi)
        movq    %r9, 8(%rsi)
        movq    %rcx, %r10
        xorl    %r8d, %r8d
        movl    $56, %eax
        syscall
        testq   %rax, %rax
        jz      1f
        ret
1:      xorl    %ebp, %ebp
        popq    %rax
        popq    %rdi
        callq   *%rax
        xorl    %edi, %edi
        movl    $60, %eax
        syscall
        hlt
#elif defined(__aarch64__)
        and     x1, x1, #-16
        stp     x4, x5, [x1, #-16]!
        mov     x4, x3
        mov     x3, #0
        mov     x8, #220
        svc     #0
        cbz     x0, 1f
        ret
1:      mov     x29, #0
        ldp     x1, x0, [sp], #16
        blr     x1
        mov     x0, #0
        mov     x8, #93
        svc     #0
        brk     #1
#endif
        .size   PalmshedCloneOnStack, . - PalmshedCloneOnStack
        .section .note.GNU-stack, "", %progbits
