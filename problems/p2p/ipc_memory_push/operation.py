"""A message to the rank `shift` places behind, of which only the sender knows the length."""
import torch
import torch.distributed as dist


def operation(inp, fewer, out, received, shift: int) -> None:
    """inp, out: [n] int32; fewer, received: [1] int32."""
    rank, world = dist.get_rank(), dist.get_world_size()
    target, source = (rank + shift) % world, (rank - shift) % world
    length = inp.numel() - fewer

    def exchange(send: torch.Tensor, receive: torch.Tensor) -> None:
        if target == rank:
            receive.copy_(send)
            return
        both = [dist.P2POp(dist.isend, send, target), dist.P2POp(dist.irecv, receive, source)]
        for work in dist.batch_isend_irecv(both):
            work.wait()

    exchange(length, received)
    exchange(inp[: int(length)], out[: int(received)])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (1024, 16384):
        inp = torch.randint(0, 2**31 - 1, (n,), dtype=torch.int32, device="cuda")
        fewer = torch.randint(0, n // 4 + 1, (1,), dtype=torch.int32, device="cuda")
        operation(inp, fewer, torch.empty_like(inp), torch.empty_like(fewer), 3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
