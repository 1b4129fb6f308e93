"""Load-balancing loss of a router, with statistics over the tokens of all ranks."""
import torch
import torch.distributed as dist


def operation(gates, ids, load, importance, loss) -> None:
    """gates: [tokens, experts] float32, ids: [tokens, topk] int32."""
    (tokens, experts), topk = gates.shape, ids.shape[1]
    load.copy_(torch.bincount(ids.flatten(), minlength=experts))
    importance.copy_(gates.sum(dim=0))
    dist.all_reduce(load)
    dist.all_reduce(importance)
    total = dist.get_world_size() * tokens
    loss[0] = experts * ((load / (total * topk)) * (importance / total)).sum()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    experts, topk = 64, 2
    for tokens in (64, 256):
        gates = 2 * torch.rand(tokens, experts, device="cuda") - 1
        ids = torch.rand(tokens, experts, device="cuda").topk(topk).indices.to(torch.int32)
        load = torch.empty(experts, dtype=torch.int32, device="cuda")
        operation(gates, ids, load, torch.empty(experts, device="cuda"), torch.empty(1, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
