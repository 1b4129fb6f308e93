"""Broadcast from a root that all ranks elect by their votes."""
import torch
import torch.distributed as dist


def operation(vote: torch.Tensor, inp: torch.Tensor, out: torch.Tensor) -> None:
    """vote: [1], inp: [n], out: [n]; int32."""
    votes = vote.clone()
    dist.all_reduce(votes)
    root = int(votes.item()) % dist.get_world_size()
    if dist.get_rank() == root:
        out.copy_(inp)
    dist.broadcast(out, src=root)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (8192, 32768):
        vote = torch.randint(0, dist.get_world_size(), (1,), dtype=torch.int32, device="cuda")
        inp = torch.randint(-(2**31), 2**31, (n,), dtype=torch.int32, device="cuda")
        operation(vote, inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
