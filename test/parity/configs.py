"""The tiny models: every shape differs between them, so that nothing can be fitted to one."""

VOCABULARY = 512
IMAGE_TOKEN, VIDEO_TOKEN, VISION_START, VISION_END = 505, 506, 503, 504


def _text(hidden, heads, kv_heads, layers, inner, sections, theta, eps=1e-6):
    return dict(
        hidden_size=hidden, num_attention_heads=heads, num_key_value_heads=kv_heads, num_hidden_layers=layers,
        intermediate_size=inner, vocab_size=VOCABULARY, max_position_embeddings=2048, rms_norm_eps=eps,
        rope_theta=theta, sections=sections,
    )


def _vision(hidden, heads, depth, inner, window, full, out):
    return dict(
        depth=depth, hidden_size=hidden, num_heads=heads, intermediate_size=inner, patch_size=14,
        temporal_patch_size=2, spatial_merge_size=2, window_size=window, fullatt_block_indexes=full,
        out_hidden_size=out, hidden_act="silu",
    )


# layout: how the folder is written for the C++ side (generation of config.json, tensor names, type, shards).
MODELS = {
    # Head sizes of the real models: 128 and 80.
    "heads-128-80": dict(
        text=_text(256, 2, 1, 2, 320, [16, 24, 24], 1e6), vision=_vision(160, 2, 4, 96, 112, [1, 3], 256),
        layout=dict(config="nested", names="model.language_model", dtype="BF16", shards=3),
    ),
    "grouped": dict(
        text=_text(96, 6, 2, 3, 128, [2, 3, 3], 1e6), vision=_vision(48, 3, 3, 72, 56, [0, 2], 96),
        layout=dict(config="flat", names="model", dtype="F32", shards=1),
    ),
    "deep": dict(
        text=_text(64, 4, 4, 5, 160, [4, 2, 2], 1e4, eps=1e-5), vision=_vision(64, 4, 5, 100, 112, [4], 64),
        layout=dict(config="v5", names="model", dtype="F16", shards=2),
    ),
}

# Written on request only: too wide for files in a repository, narrow in nothing but depth and vocabulary.
WIDE_MODELS = {
    "width-3b": dict(
        text=_text(2048, 16, 2, 2, 11008, [16, 24, 24], 1e6), vision=_vision(1280, 16, 2, 3420, 112, [1], 2048),
        layout=dict(config="flat", names="model", dtype="BF16", shards=2),
    ),
}

# (width, height) of source images. The merged grids after resizing: windows of 4 x 4 cells are cut by no edge, by one,
# or by both.
CASES = {
    "text": dict(tokens=12, images=[]),
    "one-token": dict(tokens=1, images=[]),
    "image-whole-windows": dict(tokens=9, images=[(230, 108)]),
    "image-ragged-right": dict(tokens=7, images=[(171, 110)]),
    "image-ragged-bottom": dict(tokens=7, images=[(112, 137)]),
    "image-ragged-both": dict(tokens=11, images=[(150, 174)]),
    "two-images": dict(tokens=15, images=[(90, 61), (140, 100)]),
    "long-history": dict(tokens=420, images=[(200, 130)]),
}


def hf_config(model):
    """The dictionary that transformers 4.57 reads."""
    text = dict(model["text"])
    sections = text.pop("sections")
    text["rope_scaling"] = {"type": "mrope", "mrope_section": sections}
    return dict(
        model_type="qwen2_5_vl", tie_word_embeddings=True, image_token_id=IMAGE_TOKEN, video_token_id=VIDEO_TOKEN,
        vision_start_token_id=VISION_START, vision_end_token_id=VISION_END, vision_config=model["vision"],
        text_config=dict(text, tie_word_embeddings=True),
    )


def written_config(model):
    """config.json as one of three generations of transformers writes it."""
    text, vision = dict(model["text"]), dict(model["vision"])
    sections = text.pop("sections")
    ids = dict(image_token_id=IMAGE_TOKEN, video_token_id=VIDEO_TOKEN, vision_start_token_id=VISION_START,
               vision_end_token_id=VISION_END)
    head = dict(model_type="qwen2_5_vl", architectures=["Qwen2_5_VLForConditionalGeneration"])
    generation = model["layout"]["config"]
    if generation == "flat":
        vision["in_chans"] = 3
        vision["spatial_patch_size"] = vision["patch_size"]
        return dict(head, **text, rope_scaling={"type": "mrope", "mrope_section": sections}, torch_dtype="float32",
                    use_sliding_window=False, sliding_window=32768, hidden_act="silu", vision_config=vision, **ids)
    if generation == "nested":
        text["rope_scaling"] = {"type": "default", "rope_type": "default", "mrope_section": sections}
        return dict(head, **text, torch_dtype="bfloat16", vision_config=dict(vision, in_channels=3),
                    text_config=dict(text, layer_types=["full_attention"] * text["num_hidden_layers"]), **ids)
    theta = text.pop("rope_theta")
    text["rope_parameters"] = {"rope_theta": theta, "mrope_section": sections, "rope_type": "default"}
    return dict(head, dtype="float16", text_config=text, vision_config=dict(vision, in_channels=3), **ids)


def tensor_shapes(model):
    """Canonical names (text. and vision.) and shapes."""
    text, vision = model["text"], model["vision"]
    width, inner = text["hidden_size"], text["intermediate_size"]
    kv = width // text["num_attention_heads"] * text["num_key_value_heads"]
    shapes = {"text.embed_tokens.weight": [VOCABULARY, width], "text.norm.weight": [width]}
    for i in range(text["num_hidden_layers"]):
        layer = f"text.layers.{i}"
        shapes |= {
            f"{layer}.input_layernorm.weight": [width], f"{layer}.post_attention_layernorm.weight": [width],
            f"{layer}.self_attn.q_proj.weight": [width, width], f"{layer}.self_attn.q_proj.bias": [width],
            f"{layer}.self_attn.k_proj.weight": [kv, width], f"{layer}.self_attn.k_proj.bias": [kv],
            f"{layer}.self_attn.v_proj.weight": [kv, width], f"{layer}.self_attn.v_proj.bias": [kv],
            f"{layer}.self_attn.o_proj.weight": [width, width], f"{layer}.mlp.gate_proj.weight": [inner, width],
            f"{layer}.mlp.up_proj.weight": [inner, width], f"{layer}.mlp.down_proj.weight": [width, inner],
        }
    width, inner, merged = vision["hidden_size"], vision["intermediate_size"], vision["hidden_size"] * 4
    shapes["vision.patch_embed.proj.weight"] = [width, 3, 2, 14, 14]
    for i in range(vision["depth"]):
        block = f"vision.blocks.{i}"
        shapes |= {
            f"{block}.norm1.weight": [width], f"{block}.norm2.weight": [width],
            f"{block}.attn.qkv.weight": [3 * width, width], f"{block}.attn.qkv.bias": [3 * width],
            f"{block}.attn.proj.weight": [width, width], f"{block}.attn.proj.bias": [width],
            f"{block}.mlp.gate_proj.weight": [inner, width], f"{block}.mlp.gate_proj.bias": [inner],
            f"{block}.mlp.up_proj.weight": [inner, width], f"{block}.mlp.up_proj.bias": [inner],
            f"{block}.mlp.down_proj.weight": [width, inner], f"{block}.mlp.down_proj.bias": [width],
        }
    return shapes | {
        "vision.merger.ln_q.weight": [width], "vision.merger.mlp.0.weight": [merged, merged],
        "vision.merger.mlp.0.bias": [merged], "vision.merger.mlp.2.weight": [vision["out_hidden_size"], merged],
        "vision.merger.mlp.2.bias": [vision["out_hidden_size"]],
    }


def file_name(canonical, names):
    part, rest = canonical.split(".", 1)
    if part == "text":
        return f"{names}.{rest}"
    return f"model.visual.{rest}" if names == "model.language_model" else f"visual.{rest}"
