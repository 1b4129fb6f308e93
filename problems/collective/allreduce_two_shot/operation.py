"""All-reduce of floats by its two halves: every rank adds up one slice, then slices are gathered."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    world, n = dist.get_world_size(), inp.numel()
    each = -(-n // world)  # collectives need equal slices: the last ones are padded
    padded = torch.zeros(each * world, dtype=inp.dtype, device=inp.device)
    padded[:n] = inp
    mine = torch.empty(each, dtype=inp.dtype, device=inp.device)
    dist.reduce_scatter_tensor(mine, padded, op=dist.ReduceOp.SUM)
    dist.all_gather_into_tensor(padded, mine)
    out.copy_(padded[:n])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (16384, 65536, 262144):
        inp = torch.randn(n, device="cuda")
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
