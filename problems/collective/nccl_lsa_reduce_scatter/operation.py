"""Reduce-scatter of bf16 gradients: row r of all ranks is summed up for rank r, in fp32."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [world, n], out: [n]; bf16."""
    parts = torch.empty_like(inp)  # this rank's row, by rank
    dist.all_to_all_single(parts, inp)
    out.copy_(parts.float().sum(dim=0))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (2048, 32768):
        inp = torch.randn(dist.get_world_size(), n, device="cuda").bfloat16()
        operation(inp, torch.empty(n, dtype=inp.dtype, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
