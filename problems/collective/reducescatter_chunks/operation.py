"""Reduce-scatter of floats along a ring that begins behind the owner of each shard."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [n]; out: [shard], of which elements beyond the end of inp are left alone."""
    rank, world, n, shard = dist.get_rank(), dist.get_world_size(), inp.numel(), out.numel()
    padded = torch.zeros(world, shard, device=inp.device)
    padded.view(-1)[:n] = inp
    total = padded[(rank - 1) % world].clone()
    for step in range(1, world):
        received = torch.empty_like(total)
        send = dist.P2POp(dist.isend, total, (rank + 1) % world)
        receive = dist.P2POp(dist.irecv, received, (rank - 1) % world)
        for work in dist.batch_isend_irecv([send, receive]):
            work.wait()
        total = received + padded[(rank - 1 - step) % world]
    count = max(0, min(shard, n - rank * shard))
    out[:count] = total[:count]


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for n in (4096, 32768):
        inp = torch.randn(n, device="cuda")
        operation(inp, torch.empty(-(-n // (4 * world)) * 4, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
