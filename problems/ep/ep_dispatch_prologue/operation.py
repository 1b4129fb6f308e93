"""Slots of a dispatch in the order of (source rank, token), the same in every run."""
import torch
import torch.distributed as dist


def operation(ids, per, slots, received) -> None:
    """ids, slots: [tokens, topk], received: [per]; int32."""
    world, rank = dist.get_world_size(), dist.get_rank()
    chosen = torch.nn.functional.one_hot(ids.long(), world * per).sum(dim=1)  # [tokens, experts]
    table = torch.empty(world, world * per, dtype=chosen.dtype, device=ids.device)
    dist.all_gather_into_tensor(table, chosen.sum(dim=0))
    before = table[:rank].sum(dim=0) + chosen.cumsum(dim=0) - chosen
    slots.copy_(before.gather(1, ids.long()))
    received.copy_(table.sum(dim=0)[rank * per : (rank + 1) * per])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, per, topk = dist.get_world_size(), 8, 4
    for tokens in (64, 256):
        ids = torch.rand(tokens, world * per, device="cuda").topk(topk).indices.to(torch.int32)
        received = torch.empty(per, dtype=torch.int32, device="cuda")
        operation(ids, per, torch.empty_like(ids), received)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
