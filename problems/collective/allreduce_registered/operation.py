"""All-reduce of fp16 activations: sums in fp32, rounded once."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    total = inp.float()
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    out.copy_(total.half())


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (4096, 32768):
        inp = torch.randn(n, device="cuda").half()
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
