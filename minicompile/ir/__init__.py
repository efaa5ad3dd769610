"""The two intermediate representations (Graph IR and Loop IR): data, text, verifier, interpreter.

Knows neither models nor code generators.  Read in this order:

    types, location, graph, loop    the data, each with its grammar
    text                            the notation; graph_text, loop_text, expr_text, program_text print,
                                    text_source, graph_parse, loop_parse, expr_parse read it back
    verify                          the rules: verify_graph, verify_loop, verify_program; ranges
    interpret                       the meaning: interpret_graph, interpret_loop, interpret_program
    optable, torch_call             the two doors to the ops: ours, and those of PyTorch
"""
