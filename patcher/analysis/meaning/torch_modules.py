"""What instances of `torch.nn.Module` have besides what their classes show."""

from __future__ import annotations

from patcher.analysis.symbols.text import Text

# fmt: off
MODULE_NAMES = frozenset({
    "T_destination", "add_module", "apply", "bfloat16", "buffers", "call_super_init", "children", "compile",
    "cpu", "cuda", "double", "dump_patches", "eval", "extra_repr", "float", "forward", "get_buffer",
    "get_extra_state", "get_parameter", "get_submodule", "half", "ipu", "load_state_dict", "modules", "mtia",
    "named_buffers", "named_children", "named_modules", "named_parameters", "parameters",
    "register_backward_hook", "register_buffer", "register_forward_hook", "register_forward_pre_hook",
    "register_full_backward_hook", "register_full_backward_pre_hook", "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook", "register_module", "register_parameter",
    "register_state_dict_post_hook", "register_state_dict_pre_hook", "requires_grad_", "set_extra_state",
    "set_submodule", "share_memory", "state_dict", "to", "to_empty", "train", "training", "type", "xpu",
    "zero_grad", "_apply", "_buffers", "_modules", "_parameters", "__call__",
})
# fmt: on


def registered(text: Text, name: str) -> bool:
    """Whether some code registers a parameter or buffer by that name, or sets it on another object than `self`."""
    for mention in text.mentions(name):
        before, after = text.before(mention).rstrip(), text.after(mention, name, 20).lstrip(b"\"' ")
        if before.endswith((b'"', b"'")):
            bare = before.rstrip(b"\"'").rstrip()
            if not bare and after.startswith(b","):
                return True
            if bare.endswith((b"(", b",")) and any(word in before for word in (b"regist", b"setattr", b"replace_")):
                return True
        elif before.endswith(b".") and not before.endswith(b"self.") and after[:1] == b"=" and after[1:2] != b"=":
            return True
    return False
