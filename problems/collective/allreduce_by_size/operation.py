"""All-reduce of floats of any size: NCCL chooses algorithm and protocol by the number of bytes."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(inp)
    dist.all_reduce(out, op=dist.ReduceOp.SUM)


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (256, 8192, 65536, 4194304):
        operation(torch.randn(n, device="cuda"), torch.empty(n, device="cuda"))
    dist.destroy_process_group()
