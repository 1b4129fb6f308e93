"""All-reduce of floats: every rank's `out` is the sum of all ranks' `inp`. Messages are small."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(inp)
    dist.all_reduce(out, op=dist.ReduceOp.SUM)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (1024, 4096, 8192):
        inp = torch.randn(n, device="cuda")
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
