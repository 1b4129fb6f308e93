"""Broadcast from a fixed root."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor, root: int) -> None:
    """inp: [n], out: [n]; words of 32 bits."""
    if dist.get_rank() == root:
        out.copy_(inp)
    dist.broadcast(out, src=root)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (16384, 262144):
        inp = torch.randint(-(2**31), 2**31, (n,), dtype=torch.int32, device="cuda")
        operation(inp, torch.empty_like(inp), root=3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
