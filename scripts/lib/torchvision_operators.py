"""Import before transformers: lets torchvision be imported beside a CPU build of torch.

Its wheel then registers kernels for operators that its C++ library, which does not load, would declare.
"""

import sys

import torch

try:
    import torchvision  # noqa: F401
except RuntimeError:
    for _name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[_name]
    for _name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{_name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
