"""Reduce-scatter of bf16 gradients as fp8 (e4m3) with one power-of-two scale for all ranks."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [world, m] bf16; out: [m] fp32."""
    amax = inp.float().abs().amax()
    dist.all_reduce(amax, op=dist.ReduceOp.MAX)
    mantissa, exponent = torch.frexp(amax)  # amax = mantissa * 2^exponent, mantissa in [0.5, 1)
    exponent = exponent - 9 + (mantissa > 448 / 512).int()
    scale = torch.where(amax == 0, torch.ones_like(amax), torch.ldexp(torch.ones_like(amax), exponent))
    q = (inp.float() / scale).to(torch.float8_e4m3fn)
    parts = torch.empty_like(q)  # this rank's row, by rank
    dist.all_to_all_single(parts.view(torch.uint8), q.view(torch.uint8))
    out.copy_(parts.float().sum(dim=0) * scale)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for m in (2048, 16384):
        inp = torch.randn(dist.get_world_size(), m, device="cuda").bfloat16()
        operation(inp, torch.empty(m, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
