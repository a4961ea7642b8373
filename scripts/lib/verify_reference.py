"""The reference side of verify.js: Hugging Face transformers on the same checkpoint, the same conversations, the same pixels.

verify_reference.py FOLDER: reads request.json and images.safetensors there, writes answer.json and vectors.safetensors.
Needs torch, torchvision, transformers (not 5.3 to 5.5, which place images wrongly) and safetensors.
"""

import json
import re
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import torchvision_operators  # noqa: F401
import transformers
from transformers import AutoTokenizer, Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessorFast

CONTROL = re.compile(r"<\|im_start\|>|<\|im_end\|>|<\|vision_start\|>|<\|vision_end\|>|<\|image_pad\|>")


def token_ids(tokenizer, conversation):
    """Ids with one image token an image: the template's own control tokens by id, everything else as content."""
    texts, messages = [], []
    for turn in conversation:
        parts = []
        for part in turn["content"]:
            if part["type"] == "text":
                parts.append({"type": "text", "text": f"\ue000{len(texts)}\ue001"})
                texts.append(part["text"])
            else:
                parts.append(part)
        messages.append({"role": turn["role"], "content": parts})
    rendered = tokenizer.apply_chat_template(messages, tokenize=False)

    def content(text):
        text = re.sub("\ue000(\\d+)\ue001", lambda match: texts[int(match.group(1))], text)
        return tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]

    ids, at = [], 0
    for match in CONTROL.finditer(rendered):
        ids += content(rendered[at:match.start()])
        ids.append(tokenizer.convert_tokens_to_ids(match.group()))
        at = match.end()
    return ids + content(rendered[at:])


def main(folder):
    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    if (5, 3) <= version <= (5, 5):
        sys.exit(f"transformers {transformers.__version__} places images wrongly; install another version")
    request = json.loads((folder / "request.json").read_text())
    pictures = load_file(folder / "images.safetensors")
    torch.set_num_threads(request["threads"])
    # The system turn is part of every conversation, so that a checkpoint's own default cannot differ from ours.
    tokenizer = AutoTokenizer.from_pretrained(request["model"], split_special_tokens=True)
    processor = Qwen2VLImageProcessorFast(min_pixels=request["minPixels"], max_pixels=request["maxPixels"])
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(
        request["model"], dtype=getattr(torch, request["dtype"]), attn_implementation="sdpa").eval().model
    image_token = tokenizer.convert_tokens_to_ids("<|image_pad|>")
    cases, vectors = [], {}
    for case in request["cases"]:
        short = token_ids(tokenizer, case["conversation"])
        images, grids = {}, []
        if case["images"]:
            images = dict(processor(images=[pictures[name].permute(2, 0, 1).contiguous() for name in case["images"]],
                                    return_tensors="pt", disable_grouping=True))
            grids = images["image_grid_thw"].tolist()
        counts = iter([h * w // 4 for _, h, w in grids])
        long = [i for token in short for i in ([token] * next(counts) if token == image_token else [token])]
        ids = torch.tensor([long])
        mask = torch.ones_like(ids)
        positions, _ = model.get_rope_index(ids, images.get("image_grid_thw"), None, attention_mask=mask)
        with torch.inference_mode():
            states = model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False, **images)
        vectors[case["name"]] = states.last_hidden_state[0].float().mean(0)
        cases.append({"name": case["name"], "ids": short, "tokens": len(long)})
        print(case["name"], file=sys.stderr, flush=True)
    save_file(vectors, folder / "vectors.safetensors")
    answer = {"transformers": transformers.__version__, "torch": torch.__version__, "cases": cases}
    (folder / "answer.json").write_text(json.dumps(answer))


main(Path(sys.argv[1]))
