"""All-reduce of floats along a ring: the lower half of each shard upwards, the upper half downwards."""
import torch
import torch.distributed as dist


def shift(x: torch.Tensor, turn: int) -> torch.Tensor:
    """Sends x to rank + turn and returns what rank - turn sends."""
    rank, world = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(x)
    send = dist.P2POp(dist.isend, x, (rank + turn) % world)
    receive = dist.P2POp(dist.irecv, received, (rank - turn) % world)
    for work in dist.batch_isend_irecv([send, receive]):
        work.wait()
    return received


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    rank, world, n = dist.get_rank(), dist.get_world_size(), inp.numel()
    half = 4 * -(-n // (8 * world))
    shards = torch.zeros(world, 2, half, device=inp.device)
    shards.view(-1)[:n] = inp
    for direction, turn in ((0, 1), (1, -1)):
        part = shards[:, direction]
        total = part[(rank - turn) % world].clone()
        for step in range(1, world):
            total = shift(total, turn) + part[(rank - turn * (step + 1)) % world]
        part[rank] = total
        for step in range(1, world):
            total = shift(total, turn)
            part[(rank - turn * step) % world] = total
    out.copy_(shards.view(-1)[:n])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (2048, 12288):
        inp = torch.randn(n, device="cuda")
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
