"""All-reduce of bf16 gradients with int8 and one power-of-two scale per 128 numbers on the wire."""
import torch
import torch.distributed as dist


def quantise(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [blocks, 128] fp32; integers as int8, and scales [blocks]."""
    amax = x.abs().amax(dim=1)
    mantissa, exponent = torch.frexp(amax)  # amax = mantissa * 2^exponent, mantissa in [0.5, 1)
    exponent = exponent - 7 + (mantissa > 127 / 128).int()
    scale = torch.where(amax == 0, torch.zeros_like(amax), torch.ldexp(torch.ones_like(amax), exponent))
    q = torch.where(amax[:, None] == 0, torch.zeros_like(x), x / scale[:, None])
    return q.round().to(torch.int8), scale


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp, out: [n] bf16."""
    world, n = dist.get_world_size(), inp.numel()
    each = -(-n // (128 * world))  # blocks per rank
    x = torch.zeros(world * each * 128, device=inp.device)
    x[:n] = inp.float()
    q, scale = quantise(x.view(-1, 128))
    parts, scales = torch.empty_like(q), torch.empty_like(scale)
    dist.all_to_all_single(parts, q)
    dist.all_to_all_single(scales, scale)
    terms = parts.view(world, each, 128).float() * scales.view(world, each, 1)
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    mine, mine_scale = quantise(total)
    dist.all_gather_into_tensor(q, mine)
    dist.all_gather_into_tensor(scale, mine_scale)
    out.copy_((q.float() * scale[:, None]).view(-1)[:n])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (8192, 65536):
        inp = torch.randn(n, device="cuda").bfloat16()
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
