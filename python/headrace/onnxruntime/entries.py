"""What each of ONNX Runtime's session options and configuration entries does here.

`tools/onnxruntime_options_page.py` makes docs/onnxruntime-options.md of these tables, and SessionOptions
refuses what they refuse.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Attributes of SessionOptions that act.
ACTING = {
    "intra_op_num_threads": "threads of a run; 0: one for each CPU",
    "enable_profiling": "a trace is recorded, which `end_profiling` writes",
    "profile_file_prefix": "the trace's name begins with it",
}

#: Methods of SessionOptions that act.
ACTING_METHODS = {
    "add_free_dimension_override_by_name": "fixes an open dimension",
    "add_free_dimension_override_by_denotation": "the same by its denotation",
    "add_session_config_entry": "sets an entry: see the other tables",
    "add_provider": "CPUExecutionProvider is taken; any other is `InvalidArgument`",
}

#: Attributes that are checked, kept and have no effect.
KEPT = {
    "graph_optimization_level": "all passes run; ONNX Runtime's levels name its own",
    "execution_mode": "nodes run in order, each on all threads of the run",
    "execution_order": "the plan has an order of its own",
    "inter_op_num_threads": "there are no threads between nodes",
    "use_per_session_threads": "all sessions of a process share one pool of threads",
    "enable_cpu_mem_arena": "sessions share one pool of buffers",
    "enable_mem_pattern": "activations lie in one arena that is laid out when a graph is lowered",
    "enable_mem_reuse": "activations reuse memory in any case",
    "use_deterministic_compute": "sums have one order in any case, on any number of threads",
    "logid": "there is no log of sessions",
    "log_severity_level": "there is no log of sessions",
    "log_verbosity_level": "there is no log of sessions",
}

#: Attributes and methods of SessionOptions that are refused, with what to do instead.
REFUSED = {
    "optimized_model_filepath": (
        "leave it out: passes run at each load; `headrace.packed_cache` keeps packed weights"
    ),
    "add_initializer": "write the values into the model",
    "add_external_initializers": "keep the data in the model's folder",
    "add_external_initializers_from_files_in_memory": "keep the data in the model's folder",
    "register_custom_ops_library": "export the model without such operators, or with their functions in it",
}


@dataclass(frozen=True)
class RefusedEntry:
    """An entry that would change what the caller gets: `value` is refused, others are kept."""

    value: str
    remedy: str


#: Entries of which a value is refused.
REFUSED_ENTRIES = {
    "session.load_model_format": RefusedEntry("ORT", "use the ONNX model that the .ort file was made of"),
    "session.gqa_value_layout": RefusedEntry("BNHS", "give past_value as BNSH, the model's own layout"),
    "session.disable_cpu_ep_fallback": RefusedEntry(
        "1", "leave it out: CPUExecutionProvider is the only provider, and headrace.device names a GPU"
    ),
    "session.enable_moe_expert_statistics": RefusedEntry("1", "leave it out: experts are not counted"),
    "session.enable_moe_expert_counting": RefusedEntry("1", "leave it out: experts are not counted"),
    "ep.context_enable": RefusedEntry(
        "1",
        "leave it out: no model of a compiled context is written; headrace.packed_cache keeps packed weights",
    ),
}

#: Entries that are kept and have no effect, by what they are of.
KEPT_ENTRIES = {
    "threads: idle ones spin for 3 ms after a run, and then sleep": (
        *("session.intra_op.allow_spinning", "session.intra_op.spin_duration_us"),
        *("session.intra_op.spin_backoff_max", "session.inter_op.allow_spinning"),
        *("session.inter_op.spin_duration_us", "session.inter_op.spin_backoff_max"),
        *("session.force_spinning_stop", "session.dynamic_block_base"),
    ),
    "the CPUs of threads: start the program by `taskset`": ("session.intra_op_thread_affinities",),
    "memory: sessions share one pool of buffers": (
        *("session.use_env_allocators", "session.use_device_allocator_for_initializers"),
        *("memory.enable_memory_arena_shrinkage", "session.strict_workspace_verification"),
        *("session.max_shape_override", "session.collect_node_memory_stats_to_file"),
    ),
    "packed weights: kernels' orders are theirs, and `headrace.packed_cache` keeps them": (
        *("session.disable_prepacking", "session.prepack.enable_parallel"),
        "session.save_external_prepacked_constant_initializers",
    ),
    "ONNX Runtime's optimiser: Headrace's passes all run": (
        *("optimization.disable_specified_optimizers", "optimization.minimal_build_optimizations"),
        *("optimization.constant_folding_max_output_size_in_bytes", "session.disable_aot_function_inlining"),
        *("optimization.enable_cast_chain_elimination", "session.graph_optimizations_loop_level"),
        *("session.function_expansion_byte_limit", "session.function_expansion_node_limit"),
        *("session.enable_saved_runtime_optimizations", "session.debug_layout_transformation"),
        *("session.disable_double_qdq_remover", "session.enable_quant_qdq_cleanup"),
        "session.disable_qdq_constant_folding",
    ),
    "rounding: Gelu stays exact, denormal numbers stay as they are": (
        *("optimization.enable_gelu_approximation", "session.set_denormal_as_zero"),
    ),
    "kernels of 8 and 4 bits: [what Headrace's compute](onnx.md#quantised-models)": (
        *("session.disable_quant_qdq", "session.qdqisint8allowed", "session.x64quantprecision"),
        *("session.qdq_matmulnbits_accuracy_level", "session.qdq_matmulnbits_block_size"),
        *("session.enable_dq_matmulnbits_fusion", "mlas.qnbit.force_fp32", "mlas.use_lut_gemm"),
    ),
    "ONNX Runtime's kernels on the CPU": (
        *("mlas.disable_kleidiai", "mlas.kleidiai.conv_igemm_max_work", "mlas.nchwc_depthwise_sliding"),
        "mlas.nchwc_pointwise_conv_max_input_channel_batch",
    ),
    "checks: operator sets 1 to 28 are read, and shapes are always inferred": (
        *("session.allow_released_opsets_only", "session.strict_shape_type_inference"),
    ),
    "a model in memory: its bytes are copied, and external data needs the model's path": (
        *("session.use_ort_model_bytes_directly", "session.use_ort_model_bytes_for_initializers"),
        "session.use_external_initializer_file_buffers_directly",
        "session.model_external_initializers_file_folder_path",
    ),
    "a model that is written: `optimized_model_filepath`, which is refused": (
        *("session.save_model_format", "session.optimized_model_external_initializers_file_name"),
        "session.optimized_model_external_initializers_min_size_in_bytes",
    ),
    "experts of `MoE`: they are not counted": (
        *("session.moe_expert_counter_alpha", "session.moe_expert_counter_beta"),
        "session.moe_expert_counter_state_file",
    ),
    "execution providers: there is one, `CPUExecutionProvider`": (
        *("ep.context_embed_mode", "ep.context_file_path", "ep.enable_weightless", "ep.cuda.fpa_intb_gemm"),
        *("ep.context_model_external_initializers_file_name", "ep.cuda.fpa_intb_profile_m"),
        *("ep.cuda.gqa_workspace_max_total_sequence_length", "session.disable_model_compile"),
        *("session.compile_only", "session.fail_on_suboptimal_compiled_model"),
        *("session.layer_assignment_settings", "session.name_based_layer_assignment"),
        *("session.node_partition_config_file", "session.record_ep_graph_assignment_info"),
        "session.resource_cuda_partitioning_settings",
    ),
    "attributes of SessionOptions: the attribute counts, here and in ONNX Runtime": (
        *("session.enable_cpu_mem_arena", "session.enable_mem_pattern", "session.enable_profiling"),
        *("session.execution_mode", "session.graph_optimization_level", "session.inter_op_num_threads"),
        *("session.intra_op_num_threads", "session.log_id", "session.log_severity_level"),
        *("session.log_verbosity_level", "session.optimized_model_filepath"),
        *("session.use_deterministic_compute", "session.use_per_session_threads"),
    ),
}
