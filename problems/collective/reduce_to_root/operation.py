"""Reduction to a root that all ranks elect by their votes."""
import torch
import torch.distributed as dist


def operation(vote: torch.Tensor, inp: torch.Tensor, out: torch.Tensor) -> None:
    """vote: [1] of int32, inp: [n], out: [n] of float32; only the root's out is written."""
    votes = vote.clone()
    dist.all_reduce(votes)
    root = int(votes.item()) % dist.get_world_size()
    total = inp.clone()
    dist.reduce(total, dst=root, op=dist.ReduceOp.SUM)
    if dist.get_rank() == root:
        out.copy_(total)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (512, 4096):
        vote = torch.randint(0, dist.get_world_size(), (1,), dtype=torch.int32, device="cuda")
        inp = torch.randn(n, device="cuda")
        operation(vote, inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
