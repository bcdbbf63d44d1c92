// The helper program, for image.h.
        .section .rodata
        .globl  palmshed_helper_image
        .hidden palmshed_helper_image
        .globl  palmshed_helper_image_end
        .hidden palmshed_helper_image_end
        .balign 16
palmshed_helper_image:
        .incbin PALMSHED_HELPER_PATH
palmshed_helper_image_end:
        .byte   0
        .section .note.GNU-stack, "", %progbits
